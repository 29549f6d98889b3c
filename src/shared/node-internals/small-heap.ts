import { setFlagsFromString } from 'node:v8';

/**
 * Imported first by the primary: keeps V8's young generation at its first size of 1 MB. By itself it grows to 32 MB, as
 * early as while modules are loaded, and stays there. Workers are started with a limit of their own.
 */
setFlagsFromString('--semi-space-growth-factor=1');
