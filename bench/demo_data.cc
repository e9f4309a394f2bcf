#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

#include <oneapi/tbb/parallel_for.h>

#include <echopipe/base/error.h>
#include <echopipe/base/random.h>
#include <echopipe/bench/demo_data.h>
#include <echopipe/bench/demo_jpeg.h>
#include <echopipe/bench/demo_picture.h>

namespace echopipe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kManifest = ".echopipe-demo";

// Images between two calls of `progress`.
constexpr int kBunch = 50;

void CheckRange(std::string_view name, int value, int low, int high) {
  if (value >= low && value <= high) return;
  throw Error({.code = ErrorCode::kInvalidArgument,
               .what = "out of range",
               .where = std::string(name),
               .got = std::to_string(value),
               .wanted = std::to_string(low) + " to " + std::to_string(high)});
}

void CheckOptions(const DemoDataOptions& options) {
  CheckRange("images", options.images, 1, 1'000'000);
  CheckRange("classes", options.classes, 1, 100);
  CheckRange("width", options.width, 16, 8192);
  CheckRange("height", options.height, 16, 8192);
}

[[noreturn]] void ThrowIo(const fs::path& path, const std::error_code& error) {
  throw Error({.code = ErrorCode::kIo, .what = error.message(), .where = path.string()});
}

void MakeFolder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) ThrowIo(folder, error);
}

std::error_code Write(const fs::path& path, std::string_view bytes) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file ? std::error_code()
              : std::error_code(errno != 0 ? errno : EIO, std::generic_category());
}

// Under another name first, so that a file is there in full or not at all.
void WriteFile(const fs::path& path, std::string_view bytes) {
  fs::path unfinished = path;
  unfinished += ".tmp";
  std::error_code error = Write(unfinished, bytes);
  if (!error) fs::rename(unfinished, path, error);
  if (!error) return;
  std::error_code ignored;
  fs::remove(unfinished, ignored);
  ThrowIo(path, error);
}

// What the folder holds, or is to hold.
std::string Describe(const DemoDataOptions& options) {
  return "echopipe demo data, version 1\nimages " + std::to_string(options.images) + "\nclasses " +
         std::to_string(options.classes) + "\nsize " + std::to_string(options.width) + "x" +
         std::to_string(options.height) + "\nseed " + std::to_string(options.seed) + "\n";
}

enum class State { kBegun, kComplete };

void WriteManifest(const fs::path& folder, const DemoDataOptions& options, State state) {
  WriteFile(folder / kManifest,
            Describe(options) + (state == State::kComplete ? "complete\n" : "begun\n"));
}

std::string ReadManifest(const fs::path& folder) {
  std::ifstream file(folder / kManifest, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string OnOneLine(std::string manifest) {
  while (manifest.ends_with('\n')) manifest.pop_back();
  std::ranges::replace(manifest, '\n', ';');
  return manifest;
}

[[noreturn]] void ThrowOtherUse(const fs::path& folder, const std::string& manifest,
                                const DemoDataOptions& options) {
  if (manifest.empty()) {
    throw Error({.code = ErrorCode::kInvalidArgument,
                 .what = "the folder is not empty, and not of demo data",
                 .where = folder.string()});
  }
  throw Error({.code = ErrorCode::kInvalidArgument,
               .what = "the folder holds demo data of other options",
               .where = folder.string(),
               .got = OnOneLine(manifest),
               .wanted = OnOneLine(Describe(options))});
}

// Writes the manifest of a new folder; throws if the folder is of some other use.
State Begin(const fs::path& folder, const DemoDataOptions& options) {
  MakeFolder(folder);
  const std::string manifest = ReadManifest(folder);
  if (manifest == Describe(options) + "complete\n") return State::kComplete;
  if (manifest == Describe(options) + "begun\n") return State::kBegun;
  std::error_code error;
  const bool is_empty = fs::is_empty(folder, error);
  if (error) ThrowIo(folder, error);
  if (!is_empty) ThrowOtherUse(folder, manifest, options);
  WriteManifest(folder, options, State::kBegun);
  return State::kBegun;
}

// "prefix" and the number with leading zeros.
std::string Numbered(std::string_view prefix, int number, int digits) {
  std::ostringstream text;
  text << prefix << std::setfill('0') << std::setw(digits) << number;
  return text.str();
}

fs::path ClassFolder(const fs::path& folder, int label) {
  return folder / Numbered("class_", label, 2);
}

fs::path ImagePath(const fs::path& folder, const DemoDataOptions& options, int image) {
  return ClassFolder(folder, image % options.classes) /
         (Numbered("image_", image / options.classes, 6) + ".jpg");
}

std::string MakeImage(const DemoDataOptions& options, int image) {
  const std::array<uint64_t, 2> words{options.seed, static_cast<uint64_t>(image)};
  RandomStream random(HashToKey(words));
  const int quality = static_cast<int>(random.Between(85, 90));
  const std::vector<uint8_t> pixels = DrawDemoPicture(
      {.label = image % options.classes, .width = options.width, .height = options.height}, random);
  return EncodeDemoJpeg(pixels,
                        {.width = options.width, .height = options.height, .quality = quality});
}

void MakeMissingImages(const fs::path& folder, const DemoDataOptions& options, int first, int end) {
  tbb::parallel_for(first, end, [&](int image) {
    const fs::path path = ImagePath(folder, options, image);
    std::error_code unreadable;  // then writing tells why
    if (!fs::exists(path, unreadable)) WriteFile(path, MakeImage(options, image));
  });
}

}  // namespace

void MakeDemoData(const fs::path& folder, const DemoDataOptions& options) {
  CheckOptions(options);
  if (Begin(folder, options) == State::kComplete) return;
  for (int label = 0; label < std::min(options.classes, options.images); ++label) {
    MakeFolder(ClassFolder(folder, label));
  }
  for (int first = 0; first < options.images; first += kBunch) {
    const int end = std::min(options.images, first + kBunch);
    MakeMissingImages(folder, options, first, end);
    if (options.progress) options.progress(end);
  }
  WriteManifest(folder, options, State::kComplete);
}

}  // namespace echopipe
