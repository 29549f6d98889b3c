import type { ComponentChildren } from 'preact';
import { html } from './html.mjs';

export interface Column<Row> {
  readonly title: string;
  /** Numbers stand at the right, with figures of one width. */
  readonly isNumber?: boolean;
  readonly cell: (row: Row) => ComponentChildren;
}

export interface TableProps<Row> {
  /** Read by screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string | number;
}

/** Scrolls to the side where it is too wide. The first column is the name of its row. */
export function Table<Row>({ caption, columns, rows, keyOf }: TableProps<Row>) {
  const classOf = ({ isNumber }: Column<Row>) => (isNumber ? 'number' : undefined);
  return html`<div class="table" role="region" aria-label=${caption} tabindex="0">
    <table>
      <caption class="unseen">${caption}</caption>
      <thead><tr>${columns.map((column) => html`<th scope="col" class=${classOf(column)}>${column.title}</th>`)}</tr></thead>
      <tbody>
        ${rows.map(
          (row) => html`<tr key=${keyOf(row)}>
            ${columns.map((column, index) =>
              index === 0
                ? html`<th scope="row" class=${classOf(column)}>${column.cell(row)}</th>`
                : html`<td class=${classOf(column)}>${column.cell(row)}</td>`,
            )}
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}
