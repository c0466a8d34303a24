# talweg_folder(<name> [PROTO] LINKS <libraries>...)
# One folder of src/ is one static library, talweg_<name>: every .cc in it, its sub-folders included. Files that end in
# _test.cc become <name>_tests, and each test in them is a ctest of its own. With PROTO, the folder's .proto files are compiled.
function(talweg_folder name)
  cmake_parse_arguments(ARG "PROTO" "" "LINKS" ${ARGN})
  set(folder ${PROJECT_SOURCE_DIR}/src/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cc)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "/cli/main\\.cc$")

  set(generated)
  if(ARG_PROTO)
    file(GLOB protos CONFIGURE_DEPENDS ${folder}/*.proto)
    foreach(proto ${protos})
      get_filename_component(stem ${proto} NAME_WE)
      set(out ${PROJECT_BINARY_DIR}/generated/${name}/${stem}.pb)
      add_custom_command(
        OUTPUT ${out}.cc ${out}.h
        COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/generated
        COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR}/src --cpp_out=${PROJECT_BINARY_DIR}/generated ${proto}
        DEPENDS ${proto})
      list(APPEND generated ${out}.cc)
    endforeach()
    set_source_files_properties(${generated} PROPERTIES COMPILE_OPTIONS -w)
  endif()

  set(library talweg_${name})
  add_library(${library} STATIC ${sources} ${generated})
  target_include_directories(${library} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  if(ARG_PROTO)
    target_include_directories(${library} SYSTEM PUBLIC ${PROJECT_BINARY_DIR}/generated)
    target_link_libraries(${library} PUBLIC protobuf::libprotobuf)
  endif()
  target_link_libraries(${library} PUBLIC ${ARG_LINKS})

  if(tests AND TALWEG_TESTS)
    add_executable(${name}_tests ${tests})
    target_link_libraries(${name}_tests PRIVATE ${library} GTest::gtest GTest::gtest_main)
    gtest_discover_tests(${name}_tests DISCOVERY_MODE PRE_TEST PROPERTIES LABELS unit TIMEOUT 120)
  endif()
endfunction()
