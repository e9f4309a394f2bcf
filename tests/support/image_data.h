#pragma once

#include <map>
#include <string>

#include <echopipe/tests/support/files.h>
#include <echopipe/tests/support/images.h>
#include <echopipe/tests/support/tar_builder.h>

namespace echopipe::testing {

/// Small JPEGs, each its own picture: "class-<c>/image-<i>.jpg" -> bytes. Image i is of class
/// i % classes, which is also its label in a folder or a shard made of them.
inline std::map<std::string, std::string> MakeImages(int count, int classes) {
  std::map<std::string, std::string> images;
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(1000 + i).substr(1);
    images["class-" + std::to_string(i % classes) + "/image-" + number + ".jpg"] =
        MakeJpeg(MakePicture(32 + i % 9, 40 - i % 7, 3, static_cast<uint32_t>(i + 1)));
  }
  return images;
}

/// The class of a key of MakeImages().
inline int64_t LabelIn(const std::string& key) {
  return std::stoll(key.substr(key.find("class-") + 6));
}

/// The images as files below `folder`.
inline void WriteImages(const TempFolder& folder, int count, int classes) {
  for (const auto& [name, bytes] : MakeImages(count, classes)) folder.Write(name, bytes);
}

/// The images as a shard.
inline std::string MakeImageTar(int count, int classes) {
  TarBuilder tar;
  for (const auto& [name, bytes] : MakeImages(count, classes)) {
    tar.AddFile(name, bytes);
    tar.AddFile(name.substr(0, name.size() - 4) + ".cls", std::to_string(LabelIn(name)));
  }
  return tar.AddEnd().bytes();
}

}  // namespace echopipe::testing
