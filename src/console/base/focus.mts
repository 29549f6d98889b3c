/** The focused element and all its ancestors, each with its index among its siblings. */
type Trail = readonly { readonly element: Element; readonly index: number }[];

const focusable =
  'a[href], button:not(:disabled), input:not(:disabled, [hidden]), select:not(:disabled), textarea:not(:disabled), summary, [tabindex]';

/**
 * Moves the focus when the focused element is removed from the page: to the control now at its place or after it, else
 * to the one before. A part of the page can name the control in `data-focus`, as a CSS selector. While a dialog is
 * open, the focused element outside is remembered, too.
 */
export function keepFocus(): void {
  let trails: Trail[] = [];
  const openDialogs = () => document.querySelectorAll('dialog[open]').length;
  addEventListener('focusin', ({ target }) => {
    if (target instanceof Element) trails = [...trails.slice(0, openDialogs()), trailOf(target)];
  });
  addEventListener('pointerdown', ({ target }) => {
    const hasFocus = target instanceof Node && document.activeElement?.contains(target) === true;
    if (!hasFocus || document.activeElement === document.body) trails = trails.slice(0, openDialogs()); // it may move
  });
  const removals = new MutationObserver(() => {
    if (document.activeElement !== document.body && document.activeElement !== null) return;
    const isDialogGone = trails.length > openDialogs() + 1;
    trails = trails.slice(0, openDialogs() + 1);
    const trail = trails.at(-1) ?? [];
    const element = trail[0]?.element;
    if (element?.isConnected === false) substituteFor(trail)?.focus();
    else if (isDialogGone && element instanceof HTMLElement) element.focus();
  });
  removals.observe(document.body, { childList: true, subtree: true });
}

function trailOf(target: Element): Trail {
  const trail = [];
  for (let element: Element | null = target; element !== null; element = element.parentElement) {
    trail.push({ element, index: [...(element.parentElement?.children ?? [])].indexOf(element) });
  }
  return trail;
}

/** Returns a control in the nearest ancestor on the page that has one. */
function substituteFor(trail: Trail): HTMLElement | undefined {
  const first = trail.findIndex(({ element }) => element.isConnected);
  for (let step = Math.max(1, first); step < trail.length; step++) {
    const { element } = trail[step] as Trail[number];
    const { index } = trail[step - 1] as Trail[number];
    const named = element.getAttribute('data-focus');
    const found = named === null ? nearest(element, index) : document.querySelector<HTMLElement>(named);
    if (found != null && mayHaveFocus(found)) return found;
  }
  return undefined;
}

function nearest(parent: Element, index: number): HTMLElement | undefined {
  const children = [...parent.children];
  const controls = (child: Element) =>
    [child, ...child.querySelectorAll(focusable)].filter(
      (one): one is HTMLElement => one instanceof HTMLElement && one.matches(focusable) && mayHaveFocus(one),
    );
  return children.slice(index).flatMap(controls)[0] ?? children.slice(0, index).flatMap(controls).at(-1);
}

/**
 * Whether the element is visible and a script may focus it. A text field may not on a phone: the keyboard would open.
 */
export function mayHaveFocus(element: HTMLElement): boolean {
  const isShown = element.checkVisibility?.() ?? true;
  return isShown && (matchMedia('(pointer: fine)').matches || !element.matches('input, textarea'));
}
