#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <echopipe/base/mutex.h>
#include <echopipe/io/http/listing.h>
#include <echopipe/io/http/server.h>

namespace echopipe::internal {

/// Lists folders of servers: from a manifest, else from the server's own page.
///
/// A folder is looked up in the manifests that are known of folders above; else its own
/// manifest.txt is asked for, unless a folder above came from a server's page, and then the page.
/// Threads  Every method may be called from any thread; it blocks.
/// Cost     A manifest is kept as long as this.
class HttpLister {
 public:
  struct Access {
    /// The text at a uri, of at most so many bytes.
    std::function<Result<HttpDocument>(const std::string& uri, uint64_t most_bytes)> get;
    /// True if there is an object.
    std::function<bool(const std::string& uri)> is_object;
  };

  explicit HttpLister(Access access) : access_(std::move(access)) {}

  Result<std::vector<FolderEntry>> List(const std::string& folder);

 private:
  using Entries = Result<std::vector<FolderEntry>>;

  std::optional<Entries> FromKnownManifest(const std::string& folder) const;
  std::optional<Entries> FromOwnManifest(const std::string& folder);
  Entries FromPage(const std::string& folder);
  bool IsBelowAPage(const std::string& folder) const;

  Access access_;
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<const Manifest>> manifests_ ECHOPIPE_GUARDED_BY(mutex_);
  std::set<std::string> pages_ ECHOPIPE_GUARDED_BY(mutex_);  // folders listed by one
};

}  // namespace echopipe::internal
