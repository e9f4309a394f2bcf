# find_package(echopipe) gives echopipe::pipeline; the prefix may be moved afterwards.
include(CMakePackageConfigHelpers)
include(${CMAKE_CURRENT_LIST_DIR}/PublicHeaders.cmake)

set(ECHOPIPE_CONFIG_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/echopipe)

install(TARGETS echopipe_pipeline EXPORT echopipeTargets)
install(EXPORT echopipeTargets NAMESPACE echopipe:: DESTINATION ${ECHOPIPE_CONFIG_DIR})
foreach(header IN LISTS ECHOPIPE_PUBLIC_HEADERS)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/echopipe/${folder})
endforeach()

get_target_property(ECHOPIPE_LIBRARY_TYPE echopipe_pipeline TYPE)
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/echopipeConfig.cmake.in ${PROJECT_BINARY_DIR}/echopipeConfig.cmake
  INSTALL_DESTINATION ${ECHOPIPE_CONFIG_DIR})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/echopipeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(
  FILES ${PROJECT_BINARY_DIR}/echopipeConfig.cmake ${PROJECT_BINARY_DIR}/echopipeConfigVersion.cmake
  DESTINATION ${ECHOPIPE_CONFIG_DIR})

if(TARGET echopipe_cli)
  install(TARGETS echopipe_cli)
endif()
