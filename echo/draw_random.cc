#include <echopipe/echo/draw_random.h>

namespace echopipe {

DrawRandom::DrawRandom(uint64_t seed, uint64_t point)
    : key_(HashToKey(std::array<uint64_t, 3>{0x6563686f /* "echo" */, seed, point})) {}

uint32_t DrawRandom::Below(uint64_t draw, uint32_t n) {
  if (block_number_ != draw / 4) {
    block_number_ = draw / 4;
    block_ = Block(block_number_, 0);
  }
  uint64_t product = uint64_t{block_[draw % 4]} * n;
  if (static_cast<uint32_t>(product) < n) {
    const uint32_t threshold = -n % n;
    for (uint32_t attempt = 1; static_cast<uint32_t>(product) < threshold; ++attempt) {
      product = uint64_t{Block(draw, attempt)[0]} * n;
    }
  }
  return static_cast<uint32_t>(product >> 32);
}

std::array<uint32_t, 4> DrawRandom::Block(uint64_t number, uint32_t attempt) const {
  return Philox4x32({static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32), attempt,
                     static_cast<uint32_t>(key_.high)},
                    {static_cast<uint32_t>(key_.low), static_cast<uint32_t>(key_.low >> 32)});
}

}  // namespace echopipe
