import { setFlagsFromString } from 'node:v8';

/**
 * Limits V8's young generation to its initial size of 1 MB; the primary imports this first. Otherwise it grows to 32 MB
 * while modules are loaded, and never shrinks. Workers have another limit.
 */
setFlagsFromString('--semi-space-growth-factor=1');
