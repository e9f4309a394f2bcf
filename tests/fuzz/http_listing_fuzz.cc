// Listings, as any server may send them. The first line says of what kind: "manifest", "json", or
// the path of an HTML page; the rest is the text.
//
// Parses: io/http/listing.cc

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <echopipe/base/error.h>
#include <echopipe/io/http/listing.h>
#include <echopipe/io/http/uri.h>
#include <echopipe/tests/fuzz/fuzz_input.h>

namespace {

using echopipe::Error;
using echopipe::ErrorCode;
using echopipe::FolderEntry;
using echopipe::internal::Manifest;
using echopipe::internal::ParseIndexPage;
using echopipe::internal::PercentEncode;
using echopipe::testing::FuzzInput;
using echopipe::testing::Require;

using Kind = FolderEntry::Kind;
using Entries = std::vector<FolderEntry>;

bool IsName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

// Names that lead nowhere else, each once, in order.
void CheckEntries(const Entries& entries) {
  for (size_t i = 0; i < entries.size(); ++i) {
    Require(IsName(entries[i].name));
    Require(entries[i].kind != Kind::kOther);
    Require(i == 0 || entries[i - 1].name < entries[i].name);
  }
}

// ---- Manifests

/// The files that a manifest's folders lead to.
class Walk {
 public:
  explicit Walk(const Manifest& manifest) : manifest_(manifest) { Enter(""); }
  const std::set<std::string>& files() const { return files_; }

 private:
  void Enter(const std::string& folder) {
    const auto entries = manifest_.Entries(folder);
    Require(entries && !entries->empty());
    CheckEntries(*entries);
    for (const FolderEntry& entry : *entries) {
      const std::string path = folder + entry.name;
      Require(manifest_.HasFile(path) == (entry.kind == Kind::kFile));
      if (entry.kind == Kind::kFile) {
        files_.insert(path);
      } else {
        Enter(path + "/");
      }
    }
  }

  const Manifest& manifest_;
  std::set<std::string> files_;
};

// What stands in it, without paths below something that is a file.
std::set<std::string> PathsIn(std::string_view text) {
  std::set<std::string> paths;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  for (FuzzInput input(text); !input.empty();) {
    std::string_view line = input.TakeLine();
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("./")) line.remove_prefix(2);
    if (!line.empty() && line != Manifest::kName) paths.emplace(line);
  }
  std::erase_if(paths, [all = paths](const std::string& path) {
    for (size_t slash = path.find('/'); slash != std::string::npos;
         slash = path.find('/', slash + 1)) {
      if (all.contains(path.substr(0, slash))) return true;
    }
    return false;
  });
  return paths;
}

void CheckManifest(std::string_view text) {
  try {
    const Manifest manifest{std::string(text), "m"};
    Require(Walk(manifest).files() == PathsIn(text));
  } catch (const Error& error) {
    Require(error.code() == ErrorCode::kCorrupt || error.code() == ErrorCode::kEmpty);
  }
}

// ---- Pages

// A page of these names gives them.
void CheckReturn(const Entries& entries) {
  std::string page;
  for (const FolderEntry& entry : entries) {
    page += "<a href=\"./" + PercentEncode(entry.name) + (entry.kind == Kind::kFolder ? "/" : "") +
            "\">x</a>\n";
  }
  const Entries again = ParseIndexPage("text/html", page, "/path/", "p");
  const auto equal = [](const FolderEntry& a, const FolderEntry& b) {
    return a.name == b.name && a.kind == b.kind;
  };
  Require(std::ranges::equal(entries, again, equal));
}

void CheckPage(std::string_view content_type, std::string_view path, std::string_view page) {
  try {
    const Entries entries = ParseIndexPage(content_type, page, path, "p");
    CheckEntries(entries);
    CheckReturn(entries);
  } catch (const Error& error) {
    Require(error.code() == ErrorCode::kCorrupt && content_type != "text/html");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  const std::string_view kind = input.TakeLine();
  const std::string_view text = input.TakeRest();
  if (kind == "manifest") {
    CheckManifest(text);
  } else if (kind == "json") {
    CheckPage("application/json", "/", text);
  } else {
    CheckPage("text/html", kind, text);
  }
  return 0;
}
