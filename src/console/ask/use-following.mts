import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect } from 'preact/hooks';

const nearPx = 60;

/** Keeps the end of the page in view while the element grows, for as long as the reader stays there. What is new leads to the end. */
export function useFollowing(element: RefObject<HTMLElement | null>, newest: number | undefined): void {
  useLayoutEffect(() => {
    if (newest !== undefined) toEnd();
  }, [newest]);
  useEffect(() => {
    if (element.current === null) return;
    let isAtEnd = true;
    const look = () => {
      isAtEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - nearPx;
    };
    const growth = new ResizeObserver(() => isAtEnd && toEnd());
    growth.observe(element.current);
    addEventListener('scroll', look, { passive: true });
    return () => {
      growth.disconnect();
      removeEventListener('scroll', look);
    };
  }, [element]);
}

function toEnd(): void {
  scrollTo({ top: document.documentElement.scrollHeight, behavior: 'instant' });
}
