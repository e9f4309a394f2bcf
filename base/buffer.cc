#include <algorithm>
#include <bit>
#include <new>

#include <echopipe/base/buffer.h>

namespace echopipe {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr size_t kSmallest = 256;
constexpr size_t kClasses = size_t{8} * 56;

// Classes are kSmallest, then eight steps to each power of two.
size_t ClassOf(size_t size) {
  if (size <= kSmallest) return 0;
  const int log2 = std::bit_width(size - 1) - 1;  // 2^log2 < size <= 2^(log2 + 1)
  const size_t step = size_t{1} << (log2 - 3);
  const size_t eighth = (size - 1 - (size_t{1} << log2)) / step;  // 0..7
  return static_cast<size_t>(log2 - 8) * 8 + eighth + 1;
}

size_t BytesOf(size_t size_class) {
  if (size_class == 0) return kSmallest;
  const size_t log2 = (size_class - 1) / 8 + 8;
  return (size_t{1} << log2) + ((size_class - 1) % 8 + 1) * (size_t{1} << (log2 - 3));
}

}  // namespace

// The free blocks and the accounts; shared with every buffer out, so that the pool may go first.
class BufferPool::Blocks {
 public:
  ~Blocks() {
    for (std::vector<uint8_t*>& free_blocks : free_) {
      for (uint8_t* block : free_blocks) ::operator delete(block, kAlignment);
    }
  }

  uint8_t* Take(size_t size_class) {
    const size_t bytes = BytesOf(size_class);
    {
      MutexLock lock(mutex_);
      in_use_ += bytes;
      peak_ = std::max(peak_, in_use_);
      std::vector<uint8_t*>& free_blocks = free_[size_class];
      if (!free_blocks.empty()) {
        uint8_t* block = free_blocks.back();
        free_blocks.pop_back();
        free_bytes_ -= bytes;
        return block;
      }
    }
    return static_cast<uint8_t*>(::operator new(bytes, kAlignment));
  }

  void Return(uint8_t* block, size_t size_class) {
    const size_t bytes = BytesOf(size_class);
    {
      MutexLock lock(mutex_);
      in_use_ -= bytes;
      if (in_use_ + free_bytes_ + bytes <= peak_) {
        free_[size_class].push_back(block);
        free_bytes_ += bytes;
        return;
      }
    }
    ::operator delete(block, kAlignment);
  }

  size_t in_use() {
    MutexLock lock(mutex_);
    return in_use_;
  }

  size_t peak() {
    MutexLock lock(mutex_);
    return peak_;
  }

 private:
  Mutex mutex_;
  std::array<std::vector<uint8_t*>, kClasses> free_ ECHOPIPE_GUARDED_BY(mutex_);
  size_t in_use_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  size_t peak_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  size_t free_bytes_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
};

class BufferPool::PooledBuffer final : public Buffer {
 public:
  PooledBuffer(std::shared_ptr<Blocks> blocks, size_t size, size_t size_class)
      : Buffer(blocks->Take(size_class), size),
        blocks_(std::move(blocks)),
        size_class_(size_class) {}
  ~PooledBuffer() override { blocks_->Return(data(), size_class_); }

 private:
  std::shared_ptr<Blocks> blocks_;
  size_t size_class_;
};

BufferPool::BufferPool() : blocks_(std::make_shared<Blocks>()) {}

std::shared_ptr<Buffer> BufferPool::Allocate(size_t size) {
  return std::make_shared<PooledBuffer>(blocks_, size, ClassOf(size));
}

size_t BufferPool::bytes_in_use() const { return blocks_->in_use(); }
size_t BufferPool::peak_bytes_in_use() const { return blocks_->peak(); }

}  // namespace echopipe
