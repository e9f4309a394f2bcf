#include <cstdlib>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include <echopipe/tests/support/files.h>

namespace echopipe::testing {

namespace fs = std::filesystem;

TempFolder::TempFolder() {
  std::string name = (fs::temp_directory_path() / "echopipe-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "cannot make " << name;
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TempFolder::Path(std::string_view name) const {
  const fs::path path = path_ / name;
  fs::create_directories(path.parent_path());
  return path.string();
}

std::string TempFolder::Write(std::string_view name, std::string_view bytes) const {
  std::string path = Path(name);
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

fs::path TestData() {
  const char* folder = std::getenv("ECHOPIPE_TEST_DATA");
  return folder == nullptr ? fs::path() : fs::path(folder);
}

}  // namespace echopipe::testing
