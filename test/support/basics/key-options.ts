import { features } from '../../../src/features.js';
import { OptionTable } from '../../../src/shared/config/key-options.js';

/** Options of keys, of the core and of all features. */
export const keyOptions = new OptionTable(features);
