#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include <echopipe/base/buffer.h>

namespace echopipe {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr size_t kSmallest = 256;
constexpr size_t kLargest = size_t{1} << 62;
constexpr size_t kClassesPerDoubling = 8;
constexpr size_t kClasses = 54 * kClassesPerDoubling + 1;

// Classes are kSmallest, then kClassesPerDoubling steps to each power of two.
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

// A block while it is free: the list of its class runs through the blocks themselves, so that
// giving one back cannot fail.
struct FreeBlock {
  FreeBlock* next;
};

FreeBlock* Push(void* block, FreeBlock* list) { return new (block) FreeBlock{list}; }

void Delete(FreeBlock* list) {
  while (list != nullptr) ::operator delete(std::exchange(list, list->next), kAlignment);
}

}  // namespace

// The free blocks and the accounts; shared with every buffer out, so that the pool may go first.
class BufferPool::Blocks {
 public:
  struct Block {
    uint8_t* data;
    size_t size_class;
  };

  ~Blocks() {
    for (const FreeBlocks& blocks : free_) Delete(blocks.list);
  }

  Block Take(size_t size_class) {
    {
      MutexLock lock(mutex_);
      const size_t last = std::min(size_class + 2 * kClassesPerDoubling, kClasses - 1);
      for (size_t larger = size_class; larger <= last; ++larger) {
        if (free_[larger].list != nullptr) return TakeFree(larger);
      }
    }
    const Block block = {static_cast<uint8_t*>(::operator new(BytesOf(size_class), kAlignment)),
                         size_class};
    FreeBlock* surplus = nullptr;
    {
      MutexLock lock(mutex_);
      CountUse(size_class);
      surplus = TakeSurplus();
    }
    Delete(surplus);
    return block;
  }

  void Return(const Block& block) {
    FreeBlock* surplus = nullptr;
    {
      MutexLock lock(mutex_);
      in_use_ -= BytesOf(block.size_class);
      free_bytes_ += BytesOf(block.size_class);
      FreeBlocks& blocks = free_[block.size_class];
      blocks.list = Push(block.data, blocks.list);
      surplus = TakeSurplus();
    }
    Delete(surplus);
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
  struct FreeBlocks {
    FreeBlock* list = nullptr;
    uint64_t last_take = 0;  // the number of the last Take from this class
  };

  Block TakeFree(size_t size_class) ECHOPIPE_REQUIRES(mutex_) {
    FreeBlock* block = PopFree(free_[size_class], size_class);
    CountUse(size_class);
    return {reinterpret_cast<uint8_t*>(block), size_class};
  }

  FreeBlock* PopFree(FreeBlocks& blocks, size_t size_class) ECHOPIPE_REQUIRES(mutex_) {
    free_bytes_ -= BytesOf(size_class);
    return std::exchange(blocks.list, blocks.list->next);
  }

  void CountUse(size_t size_class) ECHOPIPE_REQUIRES(mutex_) {
    in_use_ += BytesOf(size_class);
    peak_ = std::max(peak_, in_use_);
    free_[size_class].last_take = ++takes_;
  }

  // Unlinks what is over the limit, from the classes asked for longest ago.
  FreeBlock* TakeSurplus() ECHOPIPE_REQUIRES(mutex_) {
    FreeBlock* surplus = nullptr;
    while (free_bytes_ > 0 && in_use_ + free_bytes_ > 2 * peak_) {
      const size_t size_class = StalestClass();
      surplus = Push(PopFree(free_[size_class], size_class), surplus);
    }
    return surplus;
  }

  // Precondition: some block is free.
  size_t StalestClass() const ECHOPIPE_REQUIRES(mutex_) {
    size_t stalest = kClasses;
    for (size_t i = 0; i < kClasses; ++i) {
      if (free_[i].list == nullptr) continue;
      if (stalest == kClasses || free_[i].last_take < free_[stalest].last_take) stalest = i;
    }
    return stalest;
  }

  Mutex mutex_;
  std::array<FreeBlocks, kClasses> free_ ECHOPIPE_GUARDED_BY(mutex_);
  uint64_t takes_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  size_t in_use_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  size_t peak_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
  size_t free_bytes_ ECHOPIPE_GUARDED_BY(mutex_) = 0;
};

class BufferPool::PooledBuffer final : public Buffer {
 public:
  PooledBuffer(std::shared_ptr<Blocks> blocks, size_t size)
      : PooledBuffer(blocks->Take(ClassOf(size)), blocks, size) {}
  ~PooledBuffer() override { blocks_->Return(block_); }

 private:
  PooledBuffer(const Blocks::Block& block, std::shared_ptr<Blocks>& blocks, size_t size)
      : Buffer(block.data, size), blocks_(std::move(blocks)), block_(block) {}

  std::shared_ptr<Blocks> blocks_;
  Blocks::Block block_;
};

BufferPool::BufferPool() : blocks_(std::make_shared<Blocks>()) {}

std::shared_ptr<Buffer> BufferPool::Allocate(size_t size) {
  if (size > kLargest) throw std::bad_alloc();
  return std::make_shared<PooledBuffer>(blocks_, size);
}

size_t BufferPool::bytes_in_use() const { return blocks_->in_use(); }
size_t BufferPool::peak_bytes_in_use() const { return blocks_->peak(); }

}  // namespace echopipe
