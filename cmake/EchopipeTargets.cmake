# Warnings and sanitizers for our own targets; users of the library get neither.
function(echopipe_developer_options target)
  if(ECHOPIPE_DEVELOPER)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Werror)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # g++ 12 warns of std::string's own copies (its bug 105651).
      target_compile_options(${target} PRIVATE -Wno-restrict)
    endif()
  endif()
  if(ECHOPIPE_SANITIZE)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # With sanitizers g++ 12 takes an empty std::optional for one that is not initialised.
      target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
    endif()
    # oneTBB has a bad downcast of its own, which -fsanitize=vptr reports.
    target_compile_options(${target} PRIVATE
      -fsanitize=${ECHOPIPE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${ECHOPIPE_SANITIZE})
    if(ECHOPIPE_SANITIZE MATCHES "undefined")
      target_compile_options(${target} PRIVATE -fno-sanitize=vptr)
    endif()
  endif()
endfunction()

# The tests that the tsan preset builds: those labelled "threads".
if(ECHOPIPE_DEVELOPER)
  add_custom_target(threads_tests)
endif()

# echopipe_test(NAME name SOURCES files... [LABELS labels...] [TIMEOUT seconds])
# A GoogleTest program; one ctest entry for the whole program, so that a run costs one start.
function(echopipe_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;TIMEOUT" "SOURCES;LABELS")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_link_libraries(${arg_NAME} PRIVATE echopipe_test_support)
  echopipe_developer_options(${arg_NAME})
  add_test(NAME ${arg_NAME} COMMAND ${arg_NAME})
  set_tests_properties(${arg_NAME} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
  if("threads" IN_LIST arg_LABELS)
    add_dependencies(threads_tests ${arg_NAME})
  endif()
endfunction()
