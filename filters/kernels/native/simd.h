/* Which vector instructions this processor and this compiler have.
 *
 * Everything runs without any; what pays is compiled in several versions, and the fastest that can
 * run is chosen when the kernel is loaded.
 */
#ifndef LSM_SIMD_H
#define LSM_SIMD_H

enum lsm_simd { LSM_PORTABLE = 0, LSM_AVX2 = 1, LSM_AVX512 = 2 };

#if defined(__x86_64__) || defined(_M_X64)
#define LSM_X86 1
#include <immintrin.h>
#else
#define LSM_X86 0
#endif

#if LSM_X86 && defined(_MSC_VER) && !defined(__clang__)
/* MSVC compiles every intrinsic everywhere; only the processor has to be asked. */
#define LSM_TARGET_AVX2
#define LSM_TARGET_AVX512
#include <intrin.h>
static int lsm_best_simd(void) {
    int basic[4], extended[4];
    __cpuid(basic, 0);
    if (basic[0] < 7) {
        return LSM_PORTABLE;
    }
    __cpuid(basic, 1);
    __cpuidex(extended, 7, 0);
    if (!(basic[2] >> 27 & 1)) { /* OSXSAVE: xgetbv tells which registers are saved */
        return LSM_PORTABLE;
    }
    unsigned long long saved = _xgetbv(0);
    int has_avx512f = extended[1] >> 16 & 1, has_avx512vl = extended[1] >> 31 & 1;
    if (has_avx512f && has_avx512vl && (saved & 0xE6) == 0xE6) {
        return LSM_AVX512;
    }
    return (extended[1] >> 5 & 1) && (saved & 6) == 6 ? LSM_AVX2 : LSM_PORTABLE;
}
#elif LSM_X86
#define LSM_TARGET_AVX2 __attribute__((target("avx2,bmi2")))
#define LSM_TARGET_AVX512 __attribute__((target("avx512f,avx512vl,avx2,bmi2")))
static inline int lsm_best_simd(void) {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2")) {
        return LSM_PORTABLE;
    }
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") ? LSM_AVX512
                                                                                   : LSM_AVX2;
}
#else
static inline int lsm_best_simd(void) {
    return LSM_PORTABLE;
}
#endif

#endif
