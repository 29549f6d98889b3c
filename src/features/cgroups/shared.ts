import { z } from 'zod';
import type { FeatureVariables } from '../../shared/config/feature-variables.js';
import { megabytes } from '../../shared/config/values.js';

const cgroupSetting = z.string().regex(/^(auto|off|\/.*)$/, 'must be auto, off or the absolute path of a cgroup');

export const variables = {
  MODEL_API_CGROUP: {
    ...{ schema: cgroupSetting, fallback: 'auto', secrecy: 'none', setting: 'cgroup' },
    meaning:
      '`auto`: a cgroup (v2) for each CLI process if possible, else a process group; `off`; or the parent cgroup',
  },
  MODEL_API_CLI_MEMORY_MB: {
    ...{ schema: megabytes(1, 1_000_000), fallback: null, secrecy: 'none' },
    meaning: 'memory of each CLI process and its children; needs a cgroup with the memory controller',
    shownDefault: 'none',
  },
} as const satisfies FeatureVariables;

export const logEvents = {
  cgroup_lost: 'the cgroup of the CLI processes was removed or cannot be used: error, what they get instead',
};
