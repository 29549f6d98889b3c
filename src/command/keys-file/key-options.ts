import { features } from '../../features.js';
import { OptionTable } from '../../shared/config/key-options.js';

/** All options of keys that the service knows. */
export const keyOptions = new OptionTable(features);
