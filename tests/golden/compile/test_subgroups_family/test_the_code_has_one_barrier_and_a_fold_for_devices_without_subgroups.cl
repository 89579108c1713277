#ifdef HAS_SUBGROUPS
#ifdef cl_khr_subgroups
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#endif
#ifdef cl_intel_subgroups
#pragma OPENCL EXTENSION cl_intel_subgroups : enable
#endif
#define subgroup_id() ((int)get_sub_group_id())
#define subgroup_local_id() ((int)get_sub_group_local_id())
#define subgroup_count() ((int)get_num_sub_groups())
#else
#define subgroup_id() ((int)get_local_id(0))
#define subgroup_local_id() 0
#define subgroup_count() ((int)get_local_size(0))
#endif

inline float subgroup_add_float(float x) {
#ifdef HAS_SUBGROUPS
  return sub_group_reduce_add(x);
#else
  return x;
#endif
}

inline float subgroups_add_float(__local const float* results, int count) {
  float folded = results[0];
  for (int k = 1; k < count; k++) {
    folded = folded + results[k];
  }
  return folded;
}

__kernel __attribute__((reqd_work_group_size(53, 1, 1)))
void k0_output(__global const float* restrict a, __global const float* restrict x, __global const float* restrict y, __global float* restrict output) {
  const int lid0 = get_local_id(0);
  const int sgid0 = subgroup_id();
  const int slid0 = subgroup_local_id();
  const int wid0 = get_group_id(0);
  __local float l0[53] __attribute__((aligned(16)));
  float acc1;
  float acc0;
  acc1 = 0.0f;
  const float v0 = a[lid0 + wid0 * 53];
  const float v1 = x[lid0];
  acc1 = acc1 + (v0 * v1);
  const float v2 = acc1;
  const float v3 = subgroup_add_float(v2);
  if (slid0 < 1) {
    l0[sgid0] = v3;
  }
  barrier(CLK_LOCAL_MEM_FENCE); // l0: address 0 is touched at lid0 = 0, sgid0 = 0 and at lid0 = 1, sgid0 = 0
  const float v4 = subgroups_add_float(l0, subgroup_count());
  acc0 = 0.0f + v4;
  for (int i0 = lid0; i0 < 1; i0 += 53) {
    const float v5 = y[wid0];
    output[wid0] = (2.0f * acc0) + v5;
  }
}
