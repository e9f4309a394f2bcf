#include <cstdint>
#include <iostream>
#include <utility>

#include <echopipe/base/buffer.h>
#include <echopipe/base/error.h>
#include <echopipe/pipeline/tensor.h>

int main() {
  echopipe::BufferPool pool;
  echopipe::TensorBuilder builder(echopipe::DType::kUint8, {2, 3}, pool);
  for (size_t i = 0; i < builder.size(); ++i) builder.data()[i] = static_cast<uint8_t>(i);
  const echopipe::Tensor tensor = std::move(builder).Finish();
  if (tensor.shape().ToString() != "[2, 3]" || tensor.bytes()[5] != 5) return 1;
  try {
    throw echopipe::Error({.code = echopipe::ErrorCode::kNotFound, .what = "no such file"});
  } catch (const echopipe::Error& error) {
    std::cout << error.what() << '\n';
  }
}
