/** Where the console leads, in the navigation of every page. */
export interface NavigationEntry {
  readonly path: string;
  readonly label: string;
}

export interface NavigationSection {
  readonly title: string;
  readonly entries: readonly NavigationEntry[];
}
