# Writes OUTPUT, a C++ file that defines FUNCTION (declared in HEADER, without parameters) to return the text of INPUT. Runs at build time:
# cmake -DINPUT= -DOUTPUT= -DHEADER= -DFUNCTION= -P embed_text.cmake
file(READ ${INPUT} text)
string(LENGTH "${text}" length)
if(length GREATER 16000)
  message(FATAL_ERROR "${INPUT} is longer than a compiler must take in one literal (C++ [implimits]: 65,536)")
endif()
file(WRITE ${OUTPUT} "// Written by cmake/embed_text.cmake; do not edit.
#include \"${HEADER}\"

std::string_view ${FUNCTION}() {
  return R\"text(${text})text\";
}
")
