import type { codeTable as codes, reasonTable as reasons } from '../../shared/tables/errors.js';

/**
 * Tables that the console shares with the service. The build writes them into `tables.mjs`. A newer service may send a
 * name that is missing here.
 */
export declare const codeTable: Partial<typeof codes>;
export declare const reasonTable: Partial<typeof reasons>;
