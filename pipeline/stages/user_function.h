#pragma once

#include <exception>
#include <functional>
#include <map>
#include <new>
#include <string>
#include <string_view>

#include <tbb/task_arena.h>

#include <echopipe/base/error.h>
#include <echopipe/pipeline/stages/stage.h>

namespace echopipe::internal {

/// Throws kInvalidArgument if a Map or Filter names no function.
inline void CheckFunctionName(const std::string& name) {
  if (name.empty()) ThrowInvalidField("function", "no name is given", "", "a function's name");
}

/// The function of that name; throws kNotFound that names it and those there are.
template <class Function>
const Function& FindFunction(const std::map<std::string, Function, std::less<>>& functions,
                             const std::string& name) {
  const auto found = functions.find(name);
  if (found != functions.end()) return found->second;
  std::string names;
  for (const auto& [other, function] : functions) names += (names.empty() ? "" : ", ") + other;
  throw Error(
      {.code = ErrorCode::kNotFound,
       .what = "no such function was given",
       .where = "function",
       .got = name,
       .wanted = names.empty() ? "one of those given (there are none)" : "one of " + names});
}

/// Calls a user's function; whatever it throws but std::bad_alloc becomes kUserFunction. Parallel
/// loops inside it do not pick up the pipeline's other work while they wait.
template <class Call>
auto CallUserFunction(const std::string& name, const Call& call) {
  const auto error = [&name](const char* what) {
    return Error({.code = ErrorCode::kUserFunction,
                  .what = std::string("the function threw: ") + what,
                  .where = name});
  };
  try {
    return tbb::this_task_arena::isolate(call);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& thrown) {
    throw error(thrown.what());
  } catch (...) {
    throw error("something that is no std::exception");
  }
}

}  // namespace echopipe::internal
