#include <utility>

#include <echopipe/io/http/lister.h>

namespace echopipe::internal {
namespace {

constexpr uint64_t kMostManifestBytes = uint64_t{4} << 30;
constexpr uint64_t kMostPageBytes = uint64_t{16} << 20;

Error NotFound(const std::string& folder) {
  return Error({.code = ErrorCode::kNotFound, .what = "there is no such folder", .where = folder});
}

Error NotAFolder(const std::string& folder) {
  return Error({.code = ErrorCode::kIo, .what = "it is not a folder", .where = folder});
}

std::string WithoutSlash(std::string folder) {
  if (folder.ends_with('/')) folder.pop_back();
  return folder;
}

}  // namespace

Result<std::vector<FolderEntry>> HttpLister::List(const std::string& folder) {
  const std::string path = WithoutSlash(folder) + "/";
  try {
    if (std::optional<Entries> known = FromKnownManifest(path)) return *std::move(known);
    if (!IsBelowAPage(path)) {
      if (std::optional<Entries> own = FromOwnManifest(path)) return *std::move(own);
    }
    return FromPage(path);
  } catch (const Error& error) {
    return error;
  }
}

std::optional<HttpLister::Entries> HttpLister::FromKnownManifest(const std::string& folder) const {
  MutexLock lock(mutex_);
  for (const auto& [root, manifest] : manifests_) {
    if (!folder.starts_with(root)) continue;
    const std::string below = folder.substr(root.size());
    if (auto entries = manifest->Entries(below)) return *std::move(entries);
    return manifest->HasFile(WithoutSlash(below)) ? NotAFolder(folder) : NotFound(folder);
  }
  return std::nullopt;
}

std::optional<HttpLister::Entries> HttpLister::FromOwnManifest(const std::string& folder) {
  const std::string uri = folder + std::string(Manifest::kName);
  Result<HttpDocument> document = access_.get(uri, kMostManifestBytes);
  if (!document.ok() && document.error().code() == ErrorCode::kNotFound) return std::nullopt;
  auto manifest = std::make_shared<const Manifest>(std::move(document.value().body), uri);
  {
    MutexLock lock(mutex_);
    manifests_.emplace(folder, manifest);
  }
  return manifest->Entries("").value();
}

HttpLister::Entries HttpLister::FromPage(const std::string& folder) {
  Result<HttpDocument> page = access_.get(folder, kMostPageBytes);
  if (page.ok()) {
    MutexLock lock(mutex_);
    pages_.insert(folder);
    return ParseIndexPage(page.value().content_type, page.value().body, page.value().path, folder);
  }
  if (page.error().code() != ErrorCode::kNotFound) {
    if (page.error().code() != ErrorCode::kIo) return page.error();
    Error::Details details = page.error().details();
    details.wanted =
        "a page that lists the folder, or a " + std::string(Manifest::kName) + " in it";
    return Error(std::move(details));
  }
  return access_.is_object(WithoutSlash(folder)) ? NotAFolder(folder) : NotFound(folder);
}

bool HttpLister::IsBelowAPage(const std::string& folder) const {
  MutexLock lock(mutex_);
  // The first that is not before the folder comes behind all that are above it.
  for (auto page = pages_.begin(); page != pages_.end() && *page < folder; ++page) {
    if (folder.starts_with(*page)) return true;
  }
  return false;
}

}  // namespace echopipe::internal
