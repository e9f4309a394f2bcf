#pragma once

#include <functional>

#include <gtest/gtest.h>

#include <echopipe/base/error.h>

namespace echopipe::testing {

/// The error that the call throws. Fails the test if it throws none.
inline Error ErrorOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error({});
}

}  // namespace echopipe::testing
