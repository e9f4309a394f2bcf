#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <echopipe/io/storage.h>

namespace echopipe::internal {

/// The most names one pattern may stand for, and the most bytes these may have together.
inline constexpr size_t kMaxExpandedNames = 1'000'000;
inline constexpr size_t kMaxExpandedBytes = size_t{256} << 20;

/// Expands brace lists "{a,b}" and numeric ranges "{000..009}", in the order they are written.
///
/// A range keeps its width if one of its ends has a leading zero, and may run downwards. Braces
/// nest up to eight deep, 64 in all. "\" takes the meaning from the character after it.
/// Errors  kInvalidArgument: braces that are not closed, or neither a list nor a range.
///         kLimitExceeded: over kMaxExpandedNames or kMaxExpandedBytes.
std::vector<std::string> ExpandBraces(std::string_view pattern);

/// True if a name (one component of a path) matches "*", "?", "[a-z]", "[!a-z]" and "\".
///
/// A leading dot is matched by a dot alone. No pattern takes exponential time.
bool MatchesGlob(std::string_view pattern, std::string_view name);

/// The names a uri stands for: braces first, then globs against the storage's folders.
///
/// Order   Brace alternatives as they are written; the matches of each glob sorted bytewise.
///         A pattern that ends in "/" matches folders alone and keeps the "/". No pattern matches
///         the index of a shard.
/// Errors  As ExpandBraces(); kNotFound names a pattern that matches nothing. A name without a
///         glob is taken as it is, whether it is there or not.
std::vector<std::string> ExpandUri(std::string_view uri, Storage& storage);

/// Those of these names that have no glob.
std::vector<std::string> PlainNames(std::string_view uri);

}  // namespace echopipe::internal
