// Runs a fuzz target over the files of the folders and files named, where there is no fuzzer.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

std::vector<std::filesystem::path> FilesIn(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

bool Run(const std::filesystem::path& file) {
  std::printf("%s\n", file.c_str());
  std::fflush(stdout);  // the last one is to blame
  std::ifstream stream(file, std::ios::binary);
  const std::vector<char> bytes(std::istreambuf_iterator<char>(stream), {});
  // A copy of its own size: what reads behind its end is found.
  const std::vector<uint8_t> input(bytes.begin(), bytes.end());
  LLVMFuzzerTestOneInput(input.data(), input.size());
  return static_cast<bool>(stream) || stream.eof();
}

}  // namespace

int main(int count, char** words) {
  int files = 0;
  for (int i = 1; i < count; ++i) {
    for (const std::filesystem::path& file : FilesIn(words[i])) {
      if (!Run(file)) return 1;
      ++files;
    }
  }
  // A corpus that was not found would test nothing.
  return files > 0 ? 0 : 1;
}
