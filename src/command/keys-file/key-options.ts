import { features } from '../../features.js';
import { OptionTable } from '../../shared/config/key-options.js';
import type { CommandFeature, KeyAction } from '../base/command.js';

/** All options of keys that the service knows. */
export const keyOptions = new OptionTable(features);

/** Actions on keys that features add. */
export const keyActions: readonly KeyAction[] = features.flatMap(({ keyActions = [] }: CommandFeature) => keyActions);
