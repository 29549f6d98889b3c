import type { documentTable as documents } from '../../shared/tables/document-types.js';
import type { codeTable as codes, reasonTable as reasons } from '../../shared/tables/errors.js';
import type { usageFigures as figures } from '../../shared/tables/usage-figures.js';

/**
 * Tables that the console shares with the service. The build writes them into `tables.mjs`. A newer service may send a
 * name that is missing here.
 */
export declare const codeTable: Partial<Fields<typeof codes, 'mayPass' | 'title'>>;
export declare const reasonTable: Partial<Fields<typeof reasons, 'mayPass'>>;
export declare const documentTable: Fields<typeof documents, 'begin' | 'name' | 'offered'>;
export declare const usageFigures: Fields<typeof figures, 'group' | 'field' | 'unit' | 'title'>;

/** Table with these fields of each row. */
type Fields<T, F extends string> = { readonly [N in keyof T]: Pick<T[N], F & keyof T[N]> };
