// Holds the precompiled header (src/CMakeLists.txt).
