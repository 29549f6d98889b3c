import type { documentTable as documents } from '../../shared/tables/document-types.js';
import type { codeTable as codes, reasonTable as reasons } from '../../shared/tables/errors.js';
import type { usageFigures as figures } from '../../shared/tables/usage-figures.js';

/**
 * Tables that the console shares with the service. The build writes them into `tables.mjs`. A newer service may send a
 * name that is missing here.
 */
export declare const codeTable: Partial<TablePart<typeof codes, 'mayPass' | 'title'>>;
export declare const reasonTable: Partial<TablePart<typeof reasons, 'mayPass'>>;
export declare const documentTable: TablePart<typeof documents, 'begin' | 'name' | 'offered'>;
export declare const usageFigures: TablePart<typeof figures, 'group' | 'field' | 'unit' | 'title'>;

/** Table with these fields of each row. */
type TablePart<T, F extends string> = { readonly [N in keyof T]: Pick<T[N], F & keyof T[N]> };
