#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <echopipe/io/formats/file_listing.h>
#include <echopipe/io/storage.h>

namespace echopipe::internal {

/// What a listing passed over, by reason.
struct PassedOver {
  uint64_t hidden = 0;    ///< names with a leading dot (a hidden folder counts once)
  uint64_t foreign = 0;   ///< files without one of the extensions
  uint64_t in_root = 0;   ///< files beside the class folders
  uint64_t dangling = 0;  ///< links that lead nowhere, and what is neither file nor folder
  uint64_t cycles = 0;    ///< links to a folder they are in
  bool operator==(const PassedOver&) const = default;
};

/// The records of image folders.
///
/// Cost     A record takes its path below the class folder and eight bytes.
class FolderListing final : public FileListing {
 public:
  uint64_t size() const override { return begins_.size(); }
  /// Names of the classes, in the order of their labels; empty if the records have no labels.
  const std::vector<std::string>& classes() const { return classes_; }
  const PassedOver& passed_over() const { return passed_over_; }

  std::string Path(uint64_t i) const override;
  /// Its path below the root, "class/name.jpg".
  std::string Key(uint64_t i) const override;
  /// The root that it is in, as it was given.
  const std::string& Root(uint64_t i) const override { return roots_[GroupOf(i).root]; }
  std::optional<int64_t> Label(uint64_t i) const override;
  uint64_t Fingerprint() const override;

 private:
  friend class FolderLister;

  /// Neighbours in the listing that share root and class folder.
  struct Group {
    uint64_t first = 0;  // record
    size_t root = 0;
    std::string folder = {};  // "class/", or "" if unlabelled
    std::optional<int64_t> label = {};
  };

  const Group& GroupOf(uint64_t i) const;
  std::string_view Name(uint64_t i) const;

  std::vector<std::string> roots_;
  std::vector<std::string> classes_;
  std::vector<Group> groups_;
  std::string names_;             // one behind the other
  std::vector<uint64_t> begins_;  // of each name in names_
  PassedOver passed_over_;
};

/// Lists image folders.
///
/// Classes  Each direct subfolder of a root is a class, with or without records in it. Several
///          roots: the union. Labels follow the names sorted bytewise, or the classes file.
/// Records  Files at any depth below a class folder with one of the extensions jpg, jpeg, png,
///          ppm, bmp, pgm, tif, tiff, webp, in any case. A root without a subfolder is unlabelled:
///          its files are records without a label.
/// Order    Roots as they are given; in each, classes sorted bytewise; in each, paths sorted
///          bytewise.
/// Passed over and counted: hidden names, other extensions, files beside the class folders, links
///          that lead nowhere, links to a folder they are in. Other links are followed.
/// Classes file  A name a line, in the order of the labels. If it is there, every class folder must
///          be in it (a class without a folder is fine); else it is written, in one step.
/// Errors   kNotFound: no folder. kEmpty: no record at all, naming the folders. kInvalidArgument:
///          a class that is not in the classes file; labelled and unlabelled roots together.
///          kLimitExceeded: over 64 levels, or 100 million records.
FolderListing ListImageFolders(const std::vector<std::string>& roots,
                               const std::string& classes_file, Storage& storage);

/// True for the extensions above.
bool HasImageExtension(std::string_view name);

}  // namespace echopipe::internal
