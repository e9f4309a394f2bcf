# What users may include, and all that is installed. scripts/check-arrows reads this list too.
set(ECHOPIPE_PUBLIC_HEADERS
  base/buffer.h
  base/clock.h
  base/error.h
  base/export.h
  base/mutex.h
  io/shaped_storage.h
  io/storage.h
  pipeline/batch.h
  pipeline/builder.h
  pipeline/checkpoint.h
  pipeline/example.h
  pipeline/options.h
  pipeline/pipeline.h
  pipeline/spec.h
  pipeline/stats.h
  pipeline/tensor.h)
