/** What the pages are made of. A test compares it with what is installed. */
export const COMPONENTS = [
  { name: '@emotion/react', version: '11.14.0', licence: 'MIT' },
  { name: '@mui/material', version: '9.4.0', licence: 'MIT' },
  { name: '@tanstack/react-query', version: '5.104.0', licence: 'MIT' },
  { name: 'i18next', version: '26.4.2', licence: 'MIT' },
  { name: 'lucide-react', version: '1.49.0', licence: 'ISC' },
  { name: 'openapi-fetch', version: '0.17.0', licence: 'MIT' },
  { name: 'react', version: '18.3.1', licence: 'MIT' },
  { name: 'react-dom', version: '18.3.1', licence: 'MIT' },
  { name: 'react-i18next', version: '17.0.15', licence: 'MIT' },
  { name: 'tus-js-client', version: '4.3.1', licence: 'MIT' },
  { name: 'uplot', version: '1.6.32', licence: 'MIT' },
  { name: 'wouter', version: '3.13.0', licence: 'Unlicense' }
] as const;
