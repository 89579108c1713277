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

#ifdef HAS_SUBGROUPS
/* Mesa's get_sub_group_size() is that of a full subgroup, also in the last one of a group. */
#define subgroup_rest() \
  ((int)(get_local_size(0) - get_sub_group_id() * get_max_sub_group_size()))
#define subgroup_size() min((int)get_sub_group_size(), subgroup_rest())
#else
#define subgroup_size() 1
#endif

inline float subgroup_broadcast_float(float x, int item) {
#ifdef HAS_SUBGROUPS
  return sub_group_broadcast(x, item);
#else
  return x;
#endif
}

__kernel __attribute__((reqd_work_group_size(24, 1, 1)))
void k0_output(__global const float* restrict a, __global const float* restrict b, __global float* restrict output) {
  const int lid0 = get_local_id(0);
  const int lid1 = get_local_id(1);
  const int sgsz0 = subgroup_size();
  const int slid0 = subgroup_local_id();
  const int wid0 = get_group_id(0);
  const int wid1 = get_group_id(1);
  float4 acc0_0, acc0_1, acc0_2;
  acc0_0 = (float4)(0.0f);
  acc0_1 = (float4)(0.0f);
  acc0_2 = (float4)(0.0f);
  if (sgsz0 - 8 >= 0) {
    for (int i0 = 0; i0 < 3; i0++) {
      const float v0 = a[(slid0 % 8) + i0 * 8 + wid1 * 72];
      const float v1 = a[(slid0 % 8) + i0 * 8 + wid1 * 72 + 24];
      const float v2 = a[(slid0 % 8) + i0 * 8 + wid1 * 72 + 48];
      for (int i1 = 0; i1 < 8; i1++) {
        const float v3 = subgroup_broadcast_float(v0, i1);
        const float4 v4 = vload4(0, &b[i0 * 768 + i1 * 96 + lid0 * 4]);
        acc0_0 = acc0_0 + (v3 * v4);
        const float v5 = subgroup_broadcast_float(v1, i1);
        acc0_1 = acc0_1 + (v5 * v4);
        const float v6 = subgroup_broadcast_float(v2, i1);
        acc0_2 = acc0_2 + (v6 * v4);
      }
    }
  } else {
    for (int i0 = 0; i0 < 3; i0++) {
      for (int i1 = 0; i1 < 8; i1++) {
        const float v3 = a[i0 * 8 + i1 + wid1 * 72];
        const float4 v4 = vload4(0, &b[i0 * 768 + i1 * 96 + lid0 * 4]);
        acc0_0 = acc0_0 + (v3 * v4);
        const float v5 = a[i0 * 8 + i1 + wid1 * 72 + 24];
        acc0_1 = acc0_1 + (v5 * v4);
        const float v6 = a[i0 * 8 + i1 + wid1 * 72 + 48];
        acc0_2 = acc0_2 + (v6 * v4);
      }
    }
  }
  vstore4(acc0_0, 0, &output[lid0 * 4 + wid1 * 288]);
  vstore4(acc0_1, 0, &output[lid0 * 4 + wid1 * 288 + 96]);
  vstore4(acc0_2, 0, &output[lid0 * 4 + wid1 * 288 + 192]);
}
