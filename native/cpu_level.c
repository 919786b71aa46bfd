/* Which level of processors this one has, as it says itself: NULL for one that no library is made for. */
#if defined(_MSC_VER) && defined(__x86_64__)
#pragma comment(lib, "clang_rt.builtins-x86_64.lib") /* has what asks the processor, and Clang does not link it there */
#endif
#if defined(_WIN32)
__declspec(dllexport)
#endif
const char *evertree_cpu_level(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("x86-64-v4"))
        return "x86-64-v4";
    if (__builtin_cpu_supports("x86-64-v3"))
        return "x86-64-v3";
    if (__builtin_cpu_supports("x86-64-v2"))
        return "x86-64-v2";
    return 0;
#elif defined(__APPLE__) && defined(__aarch64__)
    return "apple-m1";
#elif defined(__aarch64__)
    return "generic";
#else
    return 0;
#endif
}
