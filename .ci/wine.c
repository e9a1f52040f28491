// bcryptprimitives.dll for Wine 8, which every Go program loads when it starts. It has the function that Go takes
// random bytes from, which Wine lacks, and corrects two answers of Wine.
#include <windows.h>
#include <winternl.h>
#include <string.h>

BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE p, SIZE_T n) {
  while (n) {
    ULONG k = n > 65536 ? 65536 : (ULONG)n;
    if (!SystemFunction036(p, k)) return FALSE;
    p += k;
    n -= k;
  }
  return TRUE;
}

// Wine answers "not implemented" for a class of information that it does not know, Windows "invalid class". Only after
// the latter does Go remove a file in the way of older systems.
static NTSTATUS NTAPI setInformationFile(HANDLE file, PIO_STATUS_BLOCK status, PVOID info, ULONG size, FILE_INFORMATION_CLASS class) {
  NTSTATUS s = NtSetInformationFile(file, status, info, size, class);
  return s == (NTSTATUS)0xC0000002 ? (NTSTATUS)0xC0000003 : s;
}

// Wine creates no symbolic link and answers that it did. Windows refuses one to users without the right.
static BOOLEAN WINAPI createSymbolicLink(LPCWSTR link, LPCWSTR target, DWORD flags) {
  SetLastError(ERROR_PRIVILEGE_NOT_HELD);
  return FALSE;
}

// export lets a DLL export a function in place of its own. The table of exports has 32-bit distances, so that this DLL
// must lie above the other one and less than 4 GiB from it; the linker places it there.
static void export(const char *dll, const char *name, void *function) {
  BYTE *base = (BYTE *)GetModuleHandleA(dll);
  IMAGE_NT_HEADERS *head = (IMAGE_NT_HEADERS *)(base + ((IMAGE_DOS_HEADER *)base)->e_lfanew);
  IMAGE_EXPORT_DIRECTORY *exports = (IMAGE_EXPORT_DIRECTORY *)(base + head->OptionalHeader.DataDirectory[0].VirtualAddress);
  DWORD *functions = (DWORD *)(base + exports->AddressOfFunctions), *names = (DWORD *)(base + exports->AddressOfNames), was;
  WORD *ordinals = (WORD *)(base + exports->AddressOfNameOrdinals);
  ULONG_PTR distance = (BYTE *)function - base;
  for (DWORD i = 0; i < exports->NumberOfNames && distance < 0xFFFFFFFF; i++) {
    DWORD *entry = &functions[ordinals[i]];
    if (!strcmp((char *)base + names[i], name) && VirtualProtect(entry, 4, PAGE_READWRITE, &was)) *entry = distance;
  }
}

BOOL WINAPI DllMain(HINSTANCE dll, DWORD reason, LPVOID reserved) {
  if (reason == DLL_PROCESS_ATTACH) {
    export("ntdll.dll", "NtSetInformationFile", setInformationFile);
    export("kernel32.dll", "CreateSymbolicLinkW", createSymbolicLink);
  }
  return TRUE;
}
