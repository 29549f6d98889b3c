import { useEffect, useRef } from 'preact/hooks';

/** Calls when the page is about to go: a reload, another address, the end of the tab, or a phone that puts it away. */
export function useLeaving(call: () => void): void {
  const latest = useRef(call);
  latest.current = call;
  useEffect(() => {
    const leave = () => latest.current();
    const hide = () => document.visibilityState === 'hidden' && leave();
    addEventListener('pagehide', leave);
    document.addEventListener('visibilitychange', hide);
    return () => {
      removeEventListener('pagehide', leave);
      document.removeEventListener('visibilitychange', hide);
    };
  }, []);
}
