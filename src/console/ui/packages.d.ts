/** Types of untyped package files, for the parts that the console uses. */

declare module 'temml/dist/temml.min.js' {
  interface MathOptions {
    readonly displayMode: boolean;
    readonly throwOnError: boolean;
    readonly trust: boolean;
    readonly strict: boolean;
    readonly maxExpand: number;
    readonly maxSize: readonly [number, number];
  }
  const temml: { render(source: string, element: HTMLElement, options: MathOptions): void };

  // biome-ignore lint/style/noDefaultExport: the package does
  export { temml as default };
}

declare module '@highlightjs/cdn-assets/es/core.min.js' {
  const hljs: {
    getLanguage(name: string): object | undefined;
    registerLanguage(name: string, grammar: unknown): void;
    highlight(
      code: string,
      options: { readonly language: string; readonly ignoreIllegals: boolean },
    ): { value: string };
  };

  // biome-ignore lint/style/noDefaultExport: the package does
  export { hljs as default };
}

declare module '@highlightjs/cdn-assets/es/languages/*' {
  const grammar: unknown;

  // biome-ignore lint/style/noDefaultExport: the package does
  export { grammar as default };
}
