#pragma once

/// Marks what the library offers to others; everything else is hidden.
#define ECHOPIPE_EXPORT __attribute__((visibility("default")))
