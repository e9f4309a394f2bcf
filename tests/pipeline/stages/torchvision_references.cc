#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <gtest/gtest.h>

#include <echopipe/tests/pipeline/stages/stage_testing.h>
#include <echopipe/tests/pipeline/stages/torchvision_references.h>

namespace echopipe::internal {
namespace {

const std::vector<TorchvisionReference>& AllReferences() {
  static const std::vector<TorchvisionReference> all = {
#define TORCHVISION_PICTURES
#include <echopipe/tests/pipeline/stages/torchvision_references.inc>
#undef TORCHVISION_PICTURES
  };
  return all;
}

// The formulas of scripts/make-torchvision-references.

int NoiseAt(int y, int x, int c) {
  return (97 * x + 57 * y + 131 * c + 29 * x * y + 3 * x * x * y + 11 * y * y * c) % 256;
}

int PaletteAt(int y, int x, int c) {
  static constexpr int kLevels[] = {0, 128, 255};
  static constexpr int kPowers[] = {1, 3, 9};
  return kLevels[(8 * y + x) / kPowers[c] % 3];
}

int ValueAt(const std::string& picture, int y, int x, int c) {
  if (picture == "noise") return NoiseAt(y, x, c);
  if (picture == "smooth") return (20 + 9 * x + (5 + 4 * c) * y) % 256;
  if (picture == "narrow") return 70 + NoiseAt(y, x, c) % (60 + 30 * c);
  if (picture == "flat") return 90 + 30 * c;
  if (picture == "palette") return PaletteAt(y, x, c);
  if (picture == "two_levels") return (x + y * c) % 3 == 0 ? 200 : 40;
  ADD_FAILURE() << "no picture " << picture;
  return 0;
}

}  // namespace

Tensor TorchvisionReference::Input() const {
  return Picture(input_size[0], input_size[1], input_size[2],
                 [&](int y, int x, int c) { return ValueAt(picture, y, x, c); });
}

Tensor TorchvisionReference::Output() const {
  size_t i = 0;
  return Picture(output_size[0], output_size[1], output_size[2],
                 [&](int, int, int) { return std::stoi(values.substr(2 * i++, 2), nullptr, 16); });
}

std::vector<TorchvisionReference> ReferencesFor(const std::string& operation) {
  std::vector<TorchvisionReference> found;
  std::ranges::copy_if(AllReferences(), std::back_inserter(found),
                       [&](const auto& reference) { return reference.operation == operation; });
  EXPECT_FALSE(found.empty()) << operation;
  return found;
}

void ExpectLikeTorchvision(
    const std::string& operation, int tolerance,
    const std::function<Tensor(const Tensor&, const std::vector<double>&)>& apply) {
  for (const TorchvisionReference& reference : ReferencesFor(operation)) {
    SCOPED_TRACE(operation + " " + ::testing::PrintToString(reference.parameters) + " of " +
                 reference.picture);
    const Tensor got = apply(reference.Input(), reference.parameters);
    const Tensor wanted = reference.Output();
    ASSERT_EQ(got.shape(), wanted.shape());
    int worst = 0;
    for (size_t i = 0; i < got.bytes().size(); ++i) {
      worst = std::max(worst, std::abs(got.bytes()[i] - wanted.bytes()[i]));
    }
    EXPECT_LE(worst, tolerance);
  }
}

const std::vector<TorchvisionMagnitudes>& AllTorchvisionMagnitudes() {
  static const std::vector<TorchvisionMagnitudes> all = {
#define TORCHVISION_MAGNITUDES
#include <echopipe/tests/pipeline/stages/torchvision_references.inc>
#undef TORCHVISION_MAGNITUDES
  };
  return all;
}

}  // namespace echopipe::internal
