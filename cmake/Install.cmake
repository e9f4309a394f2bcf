# find_package(echopipe) gives echopipe::pipeline, pkg-config its flags; the prefix may be moved
# afterwards.
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

set(ECHOPIPE_PC_DIR ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH ECHOPIPE_PREFIX_FROM_PC /${ECHOPIPE_PC_DIR} /)
# There is one library, static or shared: a static one always needs those behind it.
if(ECHOPIPE_LIBRARY_TYPE STREQUAL "STATIC_LIBRARY")
  set(ECHOPIPE_PC_LIBS " -lopencv_imgproc -lopencv_core")
  set(ECHOPIPE_PC_REQUIRES " tbb protobuf libcurl libjpeg libpng libwebp libhwy libisal")
endif()
configure_file(
  ${CMAKE_CURRENT_LIST_DIR}/echopipe.pc.in ${PROJECT_BINARY_DIR}/echopipe.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/echopipe.pc DESTINATION ${ECHOPIPE_PC_DIR})

if(TARGET echopipe_cli)
  install(TARGETS echopipe_cli)
endif()
