import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';

export interface Column<Row> {
  readonly title: string;
  /** Whether the cells are numbers, which are aligned to the right. */
  readonly isNumber?: boolean;
  readonly cell: (row: Row) => ComponentChildren;
}

interface TableProps<Row> {
  /** Caption for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string | number;
  /** Whether a narrow page shows each row as a card, because the row has buttons. */
  readonly isStacked?: boolean;
}

/** Shows a table that scrolls sideways if it is too wide. The first cell of a row is its header. */
export function Table<Row>({ caption, columns, rows, keyOf, isStacked = false }: TableProps<Row>) {
  const classOf = ({ isNumber }: Column<Row>) => (isNumber ? 'number' : undefined);
  return html`<div class="table ${isStacked ? 'stacked' : ''}" role="region" aria-label=${caption} tabindex="0">
    <table>
      <caption class="unseen">${caption}</caption>
      <thead><tr>${columns.map((column) => html`<th scope="col" class=${classOf(column)}>${column.title}</th>`)}</tr></thead>
      <tbody>
        ${rows.map(
          (row) => html`<tr key=${keyOf(row)}>
            ${columns.map((column, index) =>
              index === 0
                ? html`<th scope="row" class=${classOf(column)}>${column.cell(row)}</th>`
                : html`<td class=${classOf(column)} data-title=${column.title}>${column.cell(row)}</td>`,
            )}
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

export interface SortableColumn<Row> extends Column<Row> {
  /** Returns the value by which rows are sorted. */
  readonly key: (row: Row) => string | number;
}

interface SortableProps<Row> extends Omit<TableProps<Row>, 'columns'> {
  readonly columns: readonly SortableColumn<Row>[];
  /** Index of the column by which the table is first sorted; -1 for none. */
  readonly sortedBy: number;
  /** Row that stays below all others in any order. */
  readonly total?: Row;
}

interface Order {
  readonly column: number;
  readonly direction: 'ascending' | 'descending';
}

/** Shows a table that is sorted by the column that the user pressed: numbers from the largest, texts from A. */
export function SortableTable<Row>(props: SortableProps<Row>) {
  const { caption, columns, rows, keyOf, sortedBy, total } = props;
  const [order, setOrder] = useState<Order>(() => firstOrder(columns, sortedBy));
  const press = (column: number) =>
    setOrder(order.column === column ? { column, direction: otherOf(order) } : firstOrder(columns, column));
  return html`<div class="table" role="region" aria-label=${caption} tabindex="0">
    <table>
      <caption class="unseen">${caption}</caption>
      <thead>
        <tr>
          ${columns.map(
            (column, index) => html`<${SortHeader}
              column=${column}
              direction=${order.column === index ? order.direction : null}
              onPress=${() => press(index)}
            />`,
          )}
        </tr>
      </thead>
      <tbody>${sorted(rows, columns, order).map((row) => html`<${Cells} key=${keyOf(row)} columns=${columns} row=${row} />`)}</tbody>
      ${total !== undefined && html`<tfoot><${Cells} columns=${columns} row=${total} /></tfoot>`}
    </table>
  </div>`;
}

function firstOrder<Row>(columns: readonly SortableColumn<Row>[], column: number): Order {
  return { column, direction: columns[column]?.isNumber ? 'descending' : 'ascending' };
}

function otherOf({ direction }: Order): Order['direction'] {
  return direction === 'ascending' ? 'descending' : 'ascending';
}

function sorted<Row>(rows: readonly Row[], columns: readonly SortableColumn<Row>[], order: Order): readonly Row[] {
  const key = columns[order.column]?.key;
  if (key === undefined) return rows;
  const sign = order.direction === 'ascending' ? 1 : -1;
  return rows.toSorted((a, b) => sign * compare(key(a), key(b)));
}

function compare(a: string | number, b: string | number): number {
  return typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b), 'en');
}

interface SortHeaderProps {
  readonly column: { readonly title: string; readonly isNumber?: boolean };
  readonly direction: Order['direction'] | null;
  readonly onPress: () => void;
}

function SortHeader({ column, direction, onPress }: SortHeaderProps) {
  const arrow = direction === 'ascending' ? '↑' : '↓';
  return html`<th scope="col" class=${column.isNumber ? 'number' : undefined} aria-sort=${direction ?? undefined}>
    <button type="button" class="sort" onClick=${onPress}>
      ${column.title}<span class="arrow" aria-hidden="true">${direction === null ? '' : arrow}</span>
    </button>
  </th>`;
}

function Cells<Row>({ columns, row }: { readonly columns: readonly SortableColumn<Row>[]; readonly row: Row }) {
  return html`<tr>
    ${columns.map(({ cell, isNumber }, index) => {
      const kind = isNumber ? 'number' : undefined;
      return index === 0
        ? html`<th scope="row" class=${kind}>${cell(row)}</th>`
        : html`<td class=${kind}>${cell(row)}</td>`;
    })}
  </tr>`;
}
