// Sorted 64-bit keys as differences, packed to as many bits as each block of them needs.
#pragma once
