#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include <echopipe/base/random.h>
#include <echopipe/io/formats/class_names.h>
#include <echopipe/io/formats/image_folder.h>

namespace echopipe::internal {
namespace {

constexpr size_t kMaxLevels = 64;
constexpr uint64_t kMaxRecords = 100'000'000;

constexpr std::array<std::string_view, 9> kExtensions = {"bmp", "jpeg", "jpg",  "pgm", "png",
                                                         "ppm", "tif",  "tiff", "webp"};

std::string WithSlash(std::string folder) {
  if (!folder.ends_with('/')) folder += '/';
  return folder;
}

// Where a folder really is, links followed; storages without links give the path itself.
std::string RealFolder(const std::string& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  return WithSlash(error ? path : real.string());
}

[[noreturn]] void ThrowOverLimit(std::string what, const std::string& where) {
  throw Error({.code = ErrorCode::kLimitExceeded, .what = std::move(what), .where = where});
}

}  // namespace

const FolderListing::Group& FolderListing::GroupOf(uint64_t i) const {
  const auto after = std::upper_bound(groups_.begin(), groups_.end(), i,
                                      [](uint64_t at, const Group& g) { return at < g.first; });
  return *std::prev(after);
}

std::string_view FolderListing::Name(uint64_t i) const {
  const uint64_t end = i + 1 < begins_.size() ? begins_[i + 1] : names_.size();
  return std::string_view(names_).substr(begins_[i], end - begins_[i]);
}

std::string FolderListing::Key(uint64_t i) const {
  return GroupOf(i).folder + std::string(Name(i));
}

std::string FolderListing::Path(uint64_t i) const { return WithSlash(Root(i)) + Key(i); }

std::optional<int64_t> FolderListing::Label(uint64_t i) const { return GroupOf(i).label; }

uint64_t FolderListing::Fingerprint() const {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  uint64_t hash = HashBytes(names_);
  hash = HashBytes(
      {reinterpret_cast<const char*>(begins_.data()), begins_.size() * sizeof(begins_[0])}, hash);
  for (const Group& group : groups_) {
    hash = HashBytes(group.folder, hash);
    hash =
        HashToKey(std::array{hash, group.first, group.label ? uint64_t(*group.label) + 1 : 0}).low;
  }
  return hash;
}

/// Fills a listing, root by root.
class FolderLister {
 public:
  explicit FolderLister(Storage& storage) : storage_(storage) {}

  FolderListing List(const std::vector<std::string>& roots, const std::string& classes_file) {
    listing_.roots_ = roots;
    for (size_t root = 0; root < roots.size(); ++root) ListRoot(root);
    CheckNotEmpty();
    CheckLabelledAlike();
    if (!class_folders_.empty()) SetLabels(classes_file);
    return std::move(listing_);
  }

 private:
  using Kind = FolderEntry::Kind;

  std::vector<FolderEntry> Entries(const std::string& folder) {
    return Seen(storage_.List(folder));
  }

  std::vector<FolderEntry> Seen(Result<std::vector<FolderEntry>> entries) {
    if (!entries.ok()) throw entries.error();
    std::vector<FolderEntry> seen = std::move(entries).value();
    const size_t before = seen.size();
    std::erase_if(seen, [](const FolderEntry& entry) { return entry.name.starts_with('.'); });
    listing_.passed_over_.hidden += before - seen.size();
    return seen;
  }

  void ListRoot(size_t root) {
    const std::string& path = listing_.roots_[root];
    std::vector<FolderEntry> entries = Entries(path);
    ancestors_ = {RealFolder(path)};
    const bool labelled = std::any_of(entries.begin(), entries.end(), [](const FolderEntry& entry) {
      return entry.kind == Kind::kFolder;
    });
    if (!labelled) {
      AddGroup({.root = root}, entries);
      return;
    }
    std::vector<std::string> folders;
    for (FolderEntry& entry : entries) {
      if (entry.kind == Kind::kFolder) folders.push_back(std::move(entry.name));
      if (entry.kind == Kind::kFile) ++listing_.passed_over_.in_root;
      if (entry.kind == Kind::kOther) ++listing_.passed_over_.dangling;
    }
    std::sort(folders.begin(), folders.end());
    std::vector<std::string> paths;
    paths.reserve(folders.size());
    for (const std::string& folder : folders) paths.push_back(WithSlash(path) + folder);
    std::vector<Result<std::vector<FolderEntry>>> lists = storage_.ListAll(paths);
    for (size_t i = 0; i < folders.size(); ++i) {
      if (!Enter(paths[i])) continue;
      class_folders_.insert(folders[i]);
      AddGroup({.root = root, .folder = folders[i] + "/"}, Seen(std::move(lists[i])));
      ancestors_.pop_back();
    }
  }

  void AddGroup(FolderListing::Group group, const std::vector<FolderEntry>& entries) {
    const std::string base = WithSlash(listing_.roots_[group.root]) + group.folder;
    std::vector<std::string> names;
    Walk(base, "", entries, &names);
    std::sort(names.begin(), names.end());
    group.first = listing_.size();
    if (group.first + names.size() > kMaxRecords) ThrowOverLimit("the folder is too large", base);
    for (const std::string& name : names) {
      listing_.begins_.push_back(listing_.names_.size());
      listing_.names_ += name;
    }
    // An empty group would share its first record with the next.
    if (!names.empty()) listing_.groups_.push_back(std::move(group));
  }

  void Walk(const std::string& base, const std::string& below,
            const std::vector<FolderEntry>& entries, std::vector<std::string>* names) {
    for (const FolderEntry& entry : entries) {
      const std::string name = below + entry.name;
      if (entry.kind == Kind::kFolder) {
        if (!Enter(base + name)) continue;
        Walk(base, name + "/", Entries(base + name), names);
        ancestors_.pop_back();
      } else if (entry.kind == Kind::kOther) {
        ++listing_.passed_over_.dangling;
      } else if (!HasImageExtension(entry.name)) {
        ++listing_.passed_over_.foreign;
      } else {
        if (names->size() == kMaxRecords) ThrowOverLimit("the folder is too large", base);
        names->push_back(name);
      }
    }
  }

  // False if the folder holds one that is being listed: a cycle of links.
  bool Enter(const std::string& path) {
    std::string real = RealFolder(path);
    for (const std::string& ancestor : ancestors_) {
      if (!ancestor.starts_with(real)) continue;
      ++listing_.passed_over_.cycles;
      return false;
    }
    if (ancestors_.size() == kMaxLevels) ThrowOverLimit("folders nest too deep", path);
    ancestors_.push_back(std::move(real));
    return true;
  }

  void CheckNotEmpty() const {
    if (listing_.size() > 0) return;
    std::string roots;
    for (const std::string& root : listing_.roots_) roots += (roots.empty() ? "" : ", ") + root;
    throw Error({.code = ErrorCode::kEmpty, .what = "no image below the folder", .where = roots});
  }

  void CheckLabelledAlike() const {
    if (class_folders_.empty()) return;
    for (const FolderListing::Group& group : listing_.groups_) {
      if (!group.folder.empty()) continue;
      throw Error({.code = ErrorCode::kInvalidArgument,
                   .what = "the folder has no class subfolders, while others have",
                   .where = listing_.roots_[group.root]});
    }
  }

  void SetLabels(const std::string& classes_file) {
    std::optional<std::vector<std::string>> names;
    if (!classes_file.empty()) names = ReadClassNames(classes_file);
    const bool found = names.has_value();
    if (!found) names.emplace(class_folders_.begin(), class_folders_.end());
    std::map<std::string, int64_t, std::less<>> labels;
    for (const std::string& name : *names) {
      labels.emplace(name, static_cast<int64_t>(labels.size()));
    }
    for (const std::string& folder : class_folders_) {
      if (labels.contains(folder)) continue;
      throw Error({.code = ErrorCode::kInvalidArgument,
                   .what = "a class folder is not in the classes file",
                   .where = classes_file,
                   .got = folder});
    }
    for (FolderListing::Group& group : listing_.groups_) {
      group.label =
          labels.find(std::string_view(group.folder).substr(0, group.folder.size() - 1))->second;
    }
    listing_.classes_ = *std::move(names);
    if (!found && !classes_file.empty()) WriteClassNames(classes_file, listing_.classes_);
  }

  Storage& storage_;
  FolderListing listing_;
  std::set<std::string> class_folders_;
  std::vector<std::string> ancestors_;  // real paths of the folders being listed
};

FolderListing ListImageFolders(const std::vector<std::string>& roots,
                               const std::string& classes_file, Storage& storage) {
  return FolderLister(storage).List(roots, classes_file);
}

bool HasImageExtension(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  std::string extension(name.substr(dot + 1));
  for (char& c : extension) {
    if ('A' <= c && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end();
}

}  // namespace echopipe::internal
