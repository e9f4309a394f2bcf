#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <echopipe/base/clock.h>
#include <echopipe/base/export.h>

namespace echopipe {

/// Counted in draws of the pipeline's last echo point.
struct ECHOPIPE_EXPORT RunwayOptions {
  uint64_t window = 1;  ///< the most that may be ahead of the consumer: >= 1
  uint64_t batch = 1;   ///< the least that make a batch: 1..window
  /// Echo when what is ahead lasts less than this; by default, than one and a half batches.
  std::optional<Clock::Duration> low_water = std::nullopt;

  /// Throws kInvalidArgument that names the setting.
  void Validate() const;
};

/// How long the consumer can go on with what has been drawn, and whether that is too little.
///
///     drawn, not yet taken:  [=====================|..............]
///                            0     batch    low water           window
///
/// Low       Under low_water, but never under less than a batch (the consumer would wait for each),
///           nor under more than the window without a batch (it would be low after each). So an
///           upstream that keeps up, and never stops for longer than window - low water - a batch
///           last, does not let it be low.
/// Armed     Before that it is never low: start-up is not. From when the window has been full, or
///           Next() has waited, after the first batch, for longer than a full window lasts.
/// Estimates Time for a batch: the median of the last steps. Draws for a batch: their mean, more
///           than its size where some become tombstones.
/// Threads   None: one caller at a time.
class ECHOPIPE_EXPORT Runway {
 public:
  /// What is known of the consumer. All of it only grows.
  struct Consumer {
    uint64_t batches = 0;      ///< given to it before its latest call of Next()
    Clock::Duration busy{};    ///< its own time for these, outside of Next()
    Clock::Duration waited{};  ///< inside Next() since it has had its first batch, until now
  };

  /// Throws kInvalidArgument.
  explicit Runway(const RunwayOptions& options);

  /// So many have been drawn in this process, and so many of them are ahead of the consumer.
  void NoteDraws(uint64_t draws, uint64_t ahead);
  void NoteConsumer(const Consumer& consumer);

  /// More has to be drawn than upstream gives.
  bool IsLow() const { return armed_ && ahead_ < low_water_; }
  bool armed() const { return armed_; }
  /// In draws, as of now.
  uint64_t low_water() const { return low_water_; }
  /// How much longer Next() has to wait to arm it by that; nothing if it is armed, or the time for
  /// a batch is not known yet.
  std::optional<Clock::Duration> TimeToArm() const;

 private:
  /// From one look at the consumer to the next.
  struct Step {
    uint64_t batches = 0;
    uint64_t draws = 0;
    double seconds_per_batch = 0;
  };
  static constexpr size_t kSteps = 15;

  void EstimateBatch();
  void SetLowWater();
  double WindowSeconds() const;

  RunwayOptions options_;
  std::array<Step, kSteps> steps_{};
  size_t step_count_ = 0;
  Consumer consumer_;
  uint64_t taken_at_step_ = 0;
  uint64_t draws_ = 0;
  uint64_t ahead_ = 0;
  uint64_t draws_per_batch_;
  double seconds_per_batch_ = 0;
  uint64_t low_water_ = 0;
  bool armed_ = false;
};

}  // namespace echopipe
