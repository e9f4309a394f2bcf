#include <echopipe/io/storage.h>

namespace echopipe {

std::vector<Result<std::vector<FolderEntry>>> Storage::ListAll(
    const std::vector<std::string>& folders) {
  std::vector<Result<std::vector<FolderEntry>>> lists;
  lists.reserve(folders.size());
  for (const std::string& folder : folders) lists.push_back(List(folder));
  return lists;
}

std::vector<Result<uint64_t>> Storage::Sizes(const std::vector<std::string>& paths) {
  std::vector<Result<uint64_t>> sizes;
  sizes.reserve(paths.size());
  for (const std::string& path : paths) sizes.push_back(Size(path));
  return sizes;
}

std::optional<int64_t> Storage::ModifiedAt(const std::string& /*path*/) { return std::nullopt; }

}  // namespace echopipe
