import type { documentTable as documents } from '../../shared/tables/document-types.js';
import type { codeTable as codes, reasonTable as reasons } from '../../shared/tables/errors.js';
import type { usageFigures as figures } from '../../shared/tables/usage-figures.js';

/**
 * Tables that the console shares with the service. The build writes them into `tables.mjs`. A newer service may send a
 * name that is missing here.
 */
export declare const codeTable: Partial<typeof codes>;
export declare const reasonTable: Partial<typeof reasons>;
export declare const documentTable: typeof documents;
export declare const usageFigures: typeof figures;
