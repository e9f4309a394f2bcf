#pragma once

#include <functional>
#include <string>
#include <vector>

#include <echopipe/pipeline/tensor.h>

/// What torchvision makes of small pictures (scripts/make-torchvision-references).
namespace echopipe::internal {

/// One picture, one operation, and what came out.
struct TorchvisionReference {
  std::string operation;
  std::vector<double> parameters;
  std::string picture;  ///< the formula's name
  std::vector<int> input_size;
  std::vector<int> output_size;
  std::string values;  ///< [H, W, C], two hexadecimal digits each

  Tensor Input() const;
  Tensor Output() const;
};

/// All references for an operation: at least one, or the test fails.
std::vector<TorchvisionReference> ReferencesFor(const std::string& operation);

/// Applies to each reference's picture what `apply` does for its parameters: no value may be
/// further than `tolerance` from torchvision's.
void ExpectLikeTorchvision(
    const std::string& operation, int tolerance,
    const std::function<Tensor(const Tensor& pixels, const std::vector<double>& parameters)>&
        apply);

/// The magnitudes of one operation of a policy (rand_augment, trivial_augment_wide).
struct TorchvisionMagnitudes {
  std::string policy;
  std::string operation;
  bool is_signed;
  int bins;
  int height;
  int width;
  std::vector<float> values;  ///< none if the operation has no strength
};

const std::vector<TorchvisionMagnitudes>& AllTorchvisionMagnitudes();

}  // namespace echopipe::internal
