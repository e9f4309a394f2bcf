#include <utility>

#include <echopipe/pipeline/builder.h>
#include <echopipe/proto/pipeline.pb.h>

namespace echopipe {

struct PipelineBuilder::Impl {
  proto::PipelineSpec spec;
  PipelineSpec functions;  // carries them; its message is empty

  proto::Source& source() { return *spec.mutable_source(0); }
};

PipelineBuilder::PipelineBuilder(std::string uri)
    : PipelineBuilder(std::vector<std::string>{std::move(uri)}) {}

PipelineBuilder::PipelineBuilder(std::vector<std::string> uris) : impl_(std::make_unique<Impl>()) {
  impl_->spec.add_source();
  for (std::string& uri : uris) impl_->source().add_uri(std::move(uri));
}

PipelineBuilder::~PipelineBuilder() = default;

PipelineBuilder& PipelineBuilder::Seed(uint64_t seed) {
  impl_->spec.set_seed(seed);
  return *this;
}

PipelineBuilder& PipelineBuilder::ShuffleFully() {
  impl_->source().mutable_shuffle()->mutable_full();
  return *this;
}

PipelineBuilder& PipelineBuilder::ShuffleWindow(uint64_t records) {
  impl_->source().mutable_shuffle()->set_window(records);
  return *this;
}

PipelineBuilder& PipelineBuilder::Epochs(uint64_t epochs) {
  impl_->source().set_epochs(epochs);
  return *this;
}

PipelineBuilder& PipelineBuilder::Source(std::string_view text) {
  const PipelineSpec source =
      PipelineSpec::FromText("source { " + std::string(text) + " }", "Source()");
  impl_->source().MergeFrom(source.message().source(0));
  return *this;
}

PipelineBuilder& PipelineBuilder::SkipBadExamples(std::optional<uint64_t> max_count) {
  impl_->spec.mutable_bad_examples()->set_policy(proto::BadExamples::SKIP);
  if (max_count) impl_->spec.mutable_bad_examples()->set_max_count(*max_count);
  return *this;
}

PipelineBuilder& PipelineBuilder::ReplaceBadExamples(std::optional<uint64_t> max_count) {
  SkipBadExamples(max_count);
  impl_->spec.mutable_bad_examples()->set_policy(proto::BadExamples::REPLACE);
  return *this;
}

PipelineBuilder& PipelineBuilder::Decode() {
  impl_->spec.add_stage()->mutable_decode();
  return *this;
}

PipelineBuilder& PipelineBuilder::Echo(const EchoSettings& settings) {
  proto::Echo& echo = *impl_->spec.add_stage()->mutable_echo();
  if (settings.factor || !settings.adaptive) echo.set_factor(settings.factor.value_or(1));
  if (settings.shuffle_buffer) echo.set_shuffle_buffer(*settings.shuffle_buffer);
  if (settings.spacing) echo.set_spacing(*settings.spacing);
  echo.set_grouped(settings.grouped);
  echo.set_drain_each_epoch(settings.drain_each_epoch);
  if (!settings.adaptive) return *this;
  proto::AdaptiveEcho& adaptive = *echo.mutable_adaptive();
  if (settings.adaptive->max_factor) adaptive.set_max_factor(*settings.adaptive->max_factor);
  if (settings.adaptive->low_water)
    adaptive.set_low_water_ms(settings.adaptive->low_water->count());
  if (settings.adaptive->max_age) adaptive.set_max_age(*settings.adaptive->max_age);
  return *this;
}

PipelineBuilder& PipelineBuilder::RandomResizedCrop(uint32_t height, uint32_t width) {
  proto::RandomResizedCrop& crop = *impl_->spec.add_stage()->mutable_random_resized_crop();
  crop.set_height(height);
  crop.set_width(width);
  return *this;
}

PipelineBuilder& PipelineBuilder::RandomFlip() {
  impl_->spec.add_stage()->mutable_random_flip();
  return *this;
}

PipelineBuilder& PipelineBuilder::ColorJitter(const ColorJitterSettings& settings) {
  proto::ColorJitter& jitter = *impl_->spec.add_stage()->mutable_color_jitter();
  if (settings.brightness != 0) jitter.add_brightness(settings.brightness);
  if (settings.contrast != 0) jitter.add_contrast(settings.contrast);
  if (settings.saturation != 0) jitter.add_saturation(settings.saturation);
  if (settings.hue != 0) jitter.add_hue(settings.hue);
  return *this;
}

PipelineBuilder& PipelineBuilder::RandomGrayscale(double probability) {
  impl_->spec.add_stage()->mutable_random_grayscale()->set_probability(probability);
  return *this;
}

PipelineBuilder& PipelineBuilder::GaussianBlur(uint32_t kernel_size, double probability) {
  proto::GaussianBlur& blur = *impl_->spec.add_stage()->mutable_gaussian_blur();
  blur.add_kernel_size(kernel_size);
  blur.set_probability(probability);
  return *this;
}

PipelineBuilder& PipelineBuilder::RandomErasing(double probability) {
  impl_->spec.add_stage()->mutable_random_erasing()->set_probability(probability);
  return *this;
}

PipelineBuilder& PipelineBuilder::RandomRotation(double degrees) {
  impl_->spec.add_stage()->mutable_random_rotation()->add_degrees(degrees);
  return *this;
}

PipelineBuilder& PipelineBuilder::RandomAffine(const AffineSettings& settings) {
  proto::RandomAffine& affine = *impl_->spec.add_stage()->mutable_random_affine();
  if (settings.degrees != 0) affine.add_degrees(settings.degrees);
  affine.set_translate_x(settings.translate_x);
  affine.set_translate_y(settings.translate_y);
  affine.set_min_scale(settings.min_scale);
  affine.set_max_scale(settings.max_scale);
  if (settings.shear_degrees != 0) affine.add_shear(settings.shear_degrees);
  return *this;
}

PipelineBuilder& PipelineBuilder::RandomAutocontrast(double probability) {
  impl_->spec.add_stage()->mutable_random_autocontrast()->set_probability(probability);
  return *this;
}

PipelineBuilder& PipelineBuilder::RandomEqualize(double probability) {
  impl_->spec.add_stage()->mutable_random_equalize()->set_probability(probability);
  return *this;
}

PipelineBuilder& PipelineBuilder::RandomPosterize(uint32_t bits, double probability) {
  proto::RandomPosterize& posterize = *impl_->spec.add_stage()->mutable_random_posterize();
  posterize.set_bits(bits);
  posterize.set_probability(probability);
  return *this;
}

PipelineBuilder& PipelineBuilder::RandomSolarize(double threshold, double probability) {
  proto::RandomSolarize& solarize = *impl_->spec.add_stage()->mutable_random_solarize();
  solarize.set_threshold(threshold);
  solarize.set_probability(probability);
  return *this;
}

PipelineBuilder& PipelineBuilder::RandomInvert(double probability) {
  impl_->spec.add_stage()->mutable_random_invert()->set_probability(probability);
  return *this;
}

PipelineBuilder& PipelineBuilder::RandomAdjustSharpness(double factor, double probability) {
  proto::RandomAdjustSharpness& sharpness =
      *impl_->spec.add_stage()->mutable_random_adjust_sharpness();
  sharpness.set_factor(factor);
  sharpness.set_probability(probability);
  return *this;
}

PipelineBuilder& PipelineBuilder::RandAugment(uint32_t num_ops, uint32_t magnitude) {
  proto::RandAugment& augment = *impl_->spec.add_stage()->mutable_rand_augment();
  augment.set_num_ops(num_ops);
  augment.set_magnitude(magnitude);
  return *this;
}

PipelineBuilder& PipelineBuilder::TrivialAugmentWide() {
  impl_->spec.add_stage()->mutable_trivial_augment_wide();
  return *this;
}

PipelineBuilder& PipelineBuilder::Normalize() {
  impl_->spec.add_stage()->mutable_normalize();
  return *this;
}

PipelineBuilder& PipelineBuilder::Map(std::string name, MapFunction function) {
  impl_->functions = impl_->functions.WithMap(name, std::move(function));
  impl_->spec.add_stage()->mutable_map()->set_function(std::move(name));
  return *this;
}

PipelineBuilder& PipelineBuilder::Filter(std::string name, FilterFunction function) {
  impl_->functions = impl_->functions.WithFilter(name, std::move(function));
  impl_->spec.add_stage()->mutable_filter()->set_function(std::move(name));
  return *this;
}

PipelineBuilder& PipelineBuilder::Batch(const BatchSettings& settings) {
  proto::Batch& batch = *impl_->spec.add_stage()->mutable_batch();
  batch.set_size(settings.size);
  batch.set_remainder(settings.remainder == BatchSettings::Remainder::kDrop ? proto::Batch::DROP
                                                                            : proto::Batch::KEEP);
  batch.set_across_epochs(settings.across_epochs);
  return *this;
}

PipelineBuilder& PipelineBuilder::Stage(std::string_view text) {
  const PipelineSpec stage =
      PipelineSpec::FromText("stage { " + std::string(text) + " }", "Stage()");
  impl_->spec.MergeFrom(stage.message());
  return *this;
}

PipelineSpec PipelineBuilder::Build() const {
  PipelineSpec spec = impl_->functions.WithMessage(impl_->spec);
  spec.Validate();
  return spec;
}

}  // namespace echopipe
