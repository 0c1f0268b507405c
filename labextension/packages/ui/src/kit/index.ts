/** The parts pages are made of. Only this folder knows the component library. */
export { Badge } from './Badge';
export { Button, IconButton } from './Button';
export { ConfirmDialog } from './ConfirmDialog';
export { DataTable } from './DataTable';
export type { Column } from './DataTable';
export { Drawer } from './Drawer';
export { Field } from './Field';
export { MenuButton } from './Menu';
export { Meter } from './Meter';
export { RelativeTime } from './RelativeTime';
export { Segmented } from './Segmented';
export { SelectField } from './SelectField';
export { Banner, EmptyState, Skeleton } from './States';
export { Switch } from './Switch';
export { KitTheme, useColorMode } from './Theme';
export { useToasts } from './Toasts';
