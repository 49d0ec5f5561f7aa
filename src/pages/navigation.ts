/** Declares the entries of the console's navigation. */
export interface NavigationEntry {
  readonly path: string;
  readonly label: string;
}

export interface NavigationSection {
  readonly title: string;
  readonly entries: readonly NavigationEntry[];
}
